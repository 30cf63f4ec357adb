import { CheckCancelled, type GuardTurns } from './guard-turns.ts'

/** A check that can pause after each step. */
type CheckSteps = Generator<void, string>

/** The result of a check, without a pause between its steps. */
export function atOnce(steps: CheckSteps): string {
  let step = steps.next()
  while (!step.done) step = steps.next()
  return step.value
}

/** The result of a check whose steps are done in turns with other work; undefined if the client has left. */
export async function inTurns(turns: GuardTurns, steps: CheckSteps): Promise<string | undefined> {
  try {
    let step = await turns.check(() => steps.next())
    while (!step.done) step = await turns.check(() => steps.next())
    return step.value
  } catch (error) {
    if (error instanceof CheckCancelled) return undefined
    throw error
  }
}
