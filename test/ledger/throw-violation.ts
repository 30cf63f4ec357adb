/**
 * Throws if random sequences violated their model. Reports cut long messages, so the seed, the place and the violation
 * come first.
 */
export function throwViolation(
  { violation }: { readonly violation: string | undefined },
  { place, seed }: { readonly place: string; readonly seed: number },
): void {
  if (violation !== undefined) throw new Error(`seed ${seed}, ${place}: ${violation}`)
}
