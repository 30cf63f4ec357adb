import type { Texts } from '../../locales/use-texts.tsx'

/**
 * What the totals of a log count. The sums have answered calls alone, so that the text says so where the list has rows of
 * failed or refused calls, too.
 */
export function callCountText(
  { callCount, answeredCount, refusedBeside }: Texts['logs'],
  {
    calls,
    refused,
    hasFailed,
  }: { readonly calls: number; readonly refused: number; readonly hasFailed: boolean },
  formatted: (count: number) => string,
): string {
  if (refused > 0) return refusedBeside(answeredCount(calls, formatted(calls)), formatted(refused))
  return (hasFailed ? answeredCount : callCount)(calls, formatted(calls))
}

/** The number of refused calls in a list that may have only a part of those that were counted. */
export function refusedCountText(
  { refusedCount, refusedKept }: Texts['logs'],
  kept: number,
  counted: number,
  formatted: (count: number) => string,
): string {
  return counted > kept
    ? refusedKept(formatted(kept), formatted(counted))
    : refusedCount(kept, formatted(kept))
}
