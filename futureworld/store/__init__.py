"""What the stages share: questions, rollouts, outcomes, updates, and what is done."""
