import type { Endpoint } from './endpoints.ts'
import type { Price } from './price.ts'

/** Endpoint of a model by what is priced; undefined where only tokens and calls are. */
export function endpointByPrice({ image, characters, second }: Price): Endpoint | undefined {
  if (Object.keys(image).length > 0) return 'images'
  if (characters.digits > 0n) return 'speech'
  return second.digits > 0n ? 'transcriptions' : undefined
}
