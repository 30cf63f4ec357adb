import process from 'node:process'

/**
 * The seed of the night's random choices: NIGHT_SEED, or a new one. It is printed, so that a failing night
 * can be repeated.
 */
export function nightSeed(): number {
  const seed = Number(process.env['NIGHT_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  console.log(`NIGHT_SEED=${seed}`)
  return seed
}
