#!/bin/sh
#SBATCH --job-name=from-slurm
#SBATCH --partition=demo-a100
#SBATCH --time=30
#SBATCH --gres=gpu:2
#SBATCH --output=out.%j
#FW --priority low
echo "trains on $CUDA_VISIBLE_DEVICES"
