// Fetches the page again every two seconds and puts its live part in place. The
// page works without this.
(() => {
  const button = document.getElementById("pause");
  const freshness = document.getElementById("freshness");
  let paused = false;
  let stale = false;
  button.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Resume updates" : "Pause updates";
  });
  const refresh = async () => {
    if (paused || document.hidden) return;
    try {
      const answer = await fetch("/", { redirect: "error" });
      if (!answer.ok) throw new Error(answer.status);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
      document.getElementById("live").replaceWith(document.adoptNode(fresh));
      if (stale) freshness.textContent = "";
      stale = false;
    } catch {
      if (!stale) freshness.textContent = "No answer; what you see may be old.";
      stale = true;
    }
  };
  setInterval(refresh, 2000);
})();
