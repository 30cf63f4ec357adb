/** The event that tells of so many missed calls; null = an unknown number. */
export function gapText(missed: number | null): string {
  return `event: gap\ndata: ${JSON.stringify({ missed })}\n\n`
}

/** Sum of numbers of calls; null if one of them is unknown. */
export function sumOf(counts: readonly (number | null)[]): number | null {
  return counts.reduce((sum, count) => (sum === null || count === null ? null : sum + count), 0)
}
