srun() (
no() { echo "srun: $1: the script runs once on each node of the job, and srun starts as many tasks there as --ntasks-per-node says; other steps cannot be had" >&2; exit 2; };
n=${SLURM_NTASKS_PER_NODE:-1}; g=${SLURM_GPUS_PER_TASK:-0};
while [ $# -gt 0 ]; do
o=$1; shift; v=;
case $o in
--) break;;
--*=*) v=${o#*=}; o=${o%%=*};;
-[nNcJ]|--ntasks|--nodes|--ntasks-per-node|--cpus-per-task|--gpus-per-task|--job-name|--export|--cpu[-_]bind|--mem[-_]bind|--gpu-bind|--mpi|--hint) v=${1-}; [ $# -eq 0 ] || shift;;
-[nNcJK]?*) v=${o#-?}; o=${o%"$v"};;
-vv*) o=-v;;
-*) ;;
*) set -- "$o" "$@"; break;;
esac;
case $o in -[nN]|--ntasks|--nodes|--ntasks-per-node|--gpus-per-task)
while :; do case $v in 0?*) v=${v#0};; *) break;; esac; done;
case $v in ''|0|*[!0-9]*|???????*) no "$o $v";; esac;;
esac;
case $o in
-n|--ntasks) [ $((v % SLURM_NNODES)) -eq 0 ] || no "$o $v on $SLURM_NNODES nodes"; n=$((v / SLURM_NNODES));;
-N|--nodes) [ "$v" -eq "$SLURM_NNODES" ] || no "$o $v on $SLURM_NNODES nodes";;
--ntasks-per-node) n=$v;;
--gpus-per-task) g=$v;;
--export) [ "$v" = ALL ] || no "$o=$v";;
-c|--cpus-per-task|-J|--job-name|-u|--unbuffered|-K|--kill-on-bad-exit|--cpu[-_]bind|--mem[-_]bind|--gpu-bind|--mpi|--overlap|--exact|-Q|--quiet|-v|--verbose|--hint) ;;
*) no "$o";;
esac;
done;
[ $# -gt 0 ] || no "there is no command";
[ $((n * g)) -le "${SLURM_GPUS_ON_NODE:-$((n * g))}" ] || no "$n tasks with $g GPUs each, on a node with $SLURM_GPUS_ON_NODE";
task() {
export SLURM_LOCALID=$i SLURM_PROCID=$((SLURM_NODEID * n + i)) SLURM_NTASKS=$((n * SLURM_NNODES)) SLURM_STEP_NUM_TASKS=$((n * SLURM_NNODES));
export SLURM_NPROCS=$SLURM_NTASKS RANK=$SLURM_PROCID LOCAL_RANK=$i WORLD_SIZE=$SLURM_NTASKS LOCAL_WORLD_SIZE=$n;
[ "$g" -eq 0 ] || { CUDA_VISIBLE_DEVICES=$(echo "${CUDA_VISIBLE_DEVICES-}" | cut -d, -f$((i * g + 1))-$((i * g + g))); export CUDA_VISIBLE_DEVICES; };
exec "$@";
};
i=0; c=0; w=;
[ "$n" -ne 1 ] || task "$@";
while [ "$i" -lt "$n" ]; do
task "$@" & w="$w wait $! || { r=\$?; [ \$r -le \$c ] || c=\$r; };"; i=$((i + 1));
done;
eval "$w"; exit "$c"
);
scontrol() {
case "${1-} ${2-}" in
"show hostname"|"show hostnames") if [ -n "${3:-${SLURM_JOB_NODELIST-}}" ]; then echo "${3:-$SLURM_JOB_NODELIST}" | tr , '\n'; else echo "scontrol: nobody knows the addresses of this job's nodes" >&2; return 1; fi;;
*) echo "scontrol: of it there is show hostnames alone; see: forewarm jobs --help" >&2; return 1;;
esac;
};
if [ -n "${FOREWARM_MEMORY_BYTES-}" ]; then
m=$((${SLURM_MEM_PER_NODE:-0} + ${SLURM_MEM_PER_GPU:-0} * ${SLURM_GPUS_ON_NODE:-1} + ${SLURM_MEM_PER_CPU:-0} * ${SLURM_CPUS_PER_TASK:-1} * ${SLURM_NTASKS_PER_NODE:-1}));
[ "$m" -le $((FOREWARM_MEMORY_BYTES / 1048576)) ] || echo "forewarm: the script asks for $m MiB of memory, and has $((FOREWARM_MEMORY_BYTES / 1048576)) MiB here, by its GPUs: with more GPUs it has more" >&2;
unset m;
fi;
