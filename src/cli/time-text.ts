/** Formats Unix seconds: `2027-01-31 10:00Z`, or `never` for −1. */
export function timeText(seconds: number): string {
  return seconds === -1
    ? 'never'
    : `${new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ')}Z`
}
