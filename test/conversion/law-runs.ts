import process from 'node:process'

/** How many cases a law is tried on: as many as usual, or as LAW_RUNS says. */
export function lawRuns(usual: number): number {
  return Number(process.env['LAW_RUNS'] ?? usual)
}
