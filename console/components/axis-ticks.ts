/** The approximate number of intervals on an axis. */
const INTERVALS = 4
const STEPS = [1, 2, 2.5, 5, 10]

/**
 * The values at which an axis is labelled, from 0 to at least `max`. They are 1, 2, 2.5 or 5 × 10ⁿ times
 * `unit` apart (`unit` is, for example, the quota units of one dollar). For counts, the distance is a whole
 * number.
 */
export function axisTicks(
  max: number,
  { unit = 1, areWhole = false }: { readonly unit?: number; readonly areWhole?: boolean } = {},
): readonly number[] {
  if (max <= 0) return [0]
  const wanted = max / unit / INTERVALS
  const power = 10 ** Math.floor(Math.log10(wanted))
  const isFit = (step: number): boolean =>
    step >= wanted * (1 - 1e-9) && (!areWhole || Number.isInteger(step))
  const candidates = STEPS.map((step) => step * power)
  const step = candidates.find(isFit) ?? 1
  const count = Math.ceil(max / unit / step - 1e-9)
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step * unit).toPrecision(12)))
}
