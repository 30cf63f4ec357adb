import type { ChannelMinuteSums } from '../../api/channel-health.ts'

/** Milliseconds between two requests for the health of channels, on the pages that show it. */
export const HEALTH_INTERVAL_MS = 5000

const WIDTH = 96
const HEIGHT = 24
/** The height, in pixels, of the strip at the bottom of the chart that shows failures. */
const FAILURES = 6
/** The space above and below the line of the chart, in pixels. */
const INSET = 1

/** Sums over the attempts at a channel in the last hour. */
export interface HourSums {
  readonly requests: number
  readonly failed: number
  /** The median duration of the latest minute with a response, in milliseconds; null if there is none. */
  readonly latestMs: number | null
}

/** The shape of the chart of an hour. The line is interrupted where minutes have no response. */
export interface SparklineShape {
  readonly width: number
  readonly height: number
  /** The `points` attributes of SVG polylines, one for each uninterrupted part of the line. */
  readonly lines: readonly string[]
  /** The minutes with failures; `size` is the share (0 to 1) of the attempts that failed. */
  readonly failures: readonly { readonly x: number; readonly size: number }[]
}

/** The sums over the attempts at a channel in the last hour. */
export function sumOfLastHour(minutes: readonly ChannelMinuteSums[]): HourSums {
  return {
    requests: minutes.reduce((sum, { requests }) => sum + requests, 0),
    failed: minutes.reduce((sum, { failed }) => sum + failed, 0),
    latestMs: minutes.findLast(({ p50_ms }) => p50_ms !== null)?.p50_ms ?? null,
  }
}

/**
 * Computes the chart of median durations: the vertical axis reaches from 0 to the largest median, and the
 * oldest minute is on the left.
 */
export function sparkline(minutes: readonly ChannelMinuteSums[]): SparklineShape {
  const step = WIDTH / Math.max(1, minutes.length - 1)
  const top = Math.max(1, ...minutes.map(({ p50_ms }) => p50_ms ?? 0))
  const room = HEIGHT - FAILURES - 2 * INSET
  const lines: string[][] = []
  let isOpen = false
  for (const [place, { p50_ms: median }] of minutes.entries()) {
    if (median !== null) {
      if (!isOpen) lines.push([])
      lines.at(-1)?.push(`${rounded(place * step)},${rounded(INSET + room * (1 - median / top))}`)
    }
    isOpen = median !== null
  }
  return {
    width: WIDTH,
    height: HEIGHT,
    // A single minute is a short dash, because a line with one point is not visible.
    lines: lines.map((points) =>
      points.length === 1 ? `${points[0]} ${nudged(points[0] ?? '')}` : points.join(' '),
    ),
    failures: minutes.flatMap(({ requests, failed }, place) =>
      failed === 0
        ? []
        : [{ x: rounded(place * step), size: 2 + (FAILURES - 2) * Math.min(1, failed / requests) }],
    ),
  }
}

function nudged(point: string): string {
  const [x = '0', y = '0'] = point.split(',')
  return `${rounded(Number(x) - 2)},${y}`
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10
}
