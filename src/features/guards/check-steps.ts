import { CheckCancelled, type CheckTurns } from '../../call/check-turns.ts'

/** The result of a check, without a pause between its steps. */
export function atOnce<Result>(steps: Generator<unknown, Result>): Result {
  let step = steps.next()
  while (!step.done) step = steps.next()
  return step.value
}

/** The result of a check whose steps are done in turns with other work; undefined if the client has left. */
export async function inTurns<Result>(
  turns: CheckTurns,
  steps: Generator<unknown, Result>,
): Promise<Result | undefined> {
  try {
    return await turns.run(steps)
  } catch (error) {
    if (error instanceof CheckCancelled) return undefined
    throw error
  }
}
