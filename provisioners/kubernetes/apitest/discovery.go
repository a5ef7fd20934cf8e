//go:build clouds

package apitest

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// discover answers what is served: the groups of the defined kinds, and the kinds of a
// version.
func (s *Server) discover(path string) (answer, bool) {
	if path == "/apis" {
		return s.listGroups(), true
	}
	version, is := strings.CutPrefix(path, "/apis/")
	if !is || strings.Count(version, "/") != 1 {
		return answer{}, false
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: version}
	for resource, versions := range s.versions {
		if slices.Contains(versions, version) {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource, Kind: s.kinds[resource]})
		}
	}
	return answer{http.StatusOK, list}, len(list.APIResources) > 0
}

func (s *Server) listGroups() answer {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups: []metav1.APIGroup{}}
	groups := map[string][]metav1.GroupVersionForDiscovery{}
	for _, versions := range s.versions {
		for _, path := range versions {
			group, version, _ := strings.Cut(path, "/")
			groups[group] = append(groups[group], metav1.GroupVersionForDiscovery{GroupVersion: path, Version: version})
		}
	}
	for group, versions := range groups {
		list.Groups = append(list.Groups, metav1.APIGroup{Name: group, Versions: versions, PreferredVersion: versions[0]})
	}
	return answer{http.StatusOK, list}
}
