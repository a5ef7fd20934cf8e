"""What torchrun does, in little: a process for each GPU of the node, which all meet at MASTER_ADDR:MASTER_PORT.

Each brings its rank and its GPU. Rank 0 listens, adds up, and tells all the sum and how many GPUs they have together.
"""

import os
import socket
import sys
import time

node, nodes, local_size = (int(os.environ[name]) for name in ("NODE_RANK", "NNODES", "NPROC_PER_NODE"))
world, place = int(os.environ["WORLD_SIZE"]), (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
assert os.environ["FOREWARM_JOB_RANK"] == str(node), "the rank of the job and of the node differ"
assert nodes * local_size == world, "the nodes have other GPUs than the world"


def listen(gpu):
    ranks, gpus, others = {0}, {gpu}, []
    with socket.create_server(place) as server:
        server.settimeout(60)
        while len(ranks) < world:
            other = server.accept()[0].makefile("rw")
            rank, gpu = other.readline().split()
            assert int(rank) not in ranks, f"rank {rank} came twice"
            ranks.add(int(rank))
            gpus.add(gpu)
            others.append(other)
    answer = f"{sum(ranks)} {len(gpus)}"
    for other in others:
        print(answer, file=other, flush=True)
    return answer


def connect(rank, gpu):
    limit = time.monotonic() + 60
    while True:
        try:
            with socket.create_connection(place, timeout=60) as connection, connection.makefile("rw") as master:
                print(rank, gpu, file=master, flush=True)
                return master.readline().strip()
        except ConnectionRefusedError:  # rank 0 does not listen yet
            assert time.monotonic() < limit, "rank 0 did not listen"
            time.sleep(0.05)


def work(local_rank):
    rank, gpu = node * local_size + local_rank, os.environ["CUDA_VISIBLE_DEVICES"].split(",")[local_rank]
    answer = connect(rank, gpu) if rank else listen(gpu)
    print(f"RANK={rank} LOCAL_RANK={local_rank} WORLD_SIZE={world} sum and GPUs: {answer}", flush=True)


children = []
for local_rank in range(local_size):
    child = os.fork()
    if child == 0:
        work(local_rank)
        os._exit(0)
    children.append(child)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
