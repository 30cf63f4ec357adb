import process from 'node:process'

/**
 * What a night's random choices begin with: NIGHT_SEED, or a new one. It is printed, so that a bad night can
 * be had again.
 */
export function nightSeed(): number {
  const seed = Number(process.env['NIGHT_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  console.log(`NIGHT_SEED=${seed}`)
  return seed
}
