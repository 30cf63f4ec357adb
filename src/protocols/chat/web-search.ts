import type { SearchLocation, WebSearch } from '../conversation.ts'
import { type Fields, fieldsAt, present, textAt, enumAt } from './field.ts'

/** Web search max_uses by `search_context_size`, ascending; `docs/api.md: Limits`. */
const SIZES = [
  ['low', 1],
  ['medium', 5],
  ['high', 10],
] as const

const USES: ReadonlyMap<string, number> = new Map(SIZES)
const PLACES = ['city', 'country', 'region', 'timezone'] as const

/** Decodes `web_search_options`. */
export function decodeWebSearch(value: unknown): WebSearch {
  const options = fieldsAt(value, 'web_search_options')
  const size = present(options['search_context_size']) ?? 'medium'
  const location = decodeLocation(options)
  return {
    maxUses: enumAt(USES, size, 'web_search_options.search_context_size'),
    ...(location && { location }),
  }
}

function decodeLocation(options: Fields): SearchLocation | undefined {
  const path = 'web_search_options.user_location'
  const value = present(options['user_location'])
  if (value === undefined) return undefined
  const place = fieldsAt(fieldsAt(value, path)['approximate'], `${path}.approximate`)
  const named = PLACES.flatMap((key) => {
    const name = present(place[key])
    return name === undefined ? [] : [[key, textAt(name, `${path}.approximate.${key}`)] as const]
  })
  return named.length > 0 ? Object.fromEntries(named) : undefined
}

/** Encodes a search with the smallest size that allows as many uses. */
export function encodeWebSearch({ maxUses, location }: WebSearch): unknown {
  const [size] = SIZES.find(([, uses]) => maxUses <= uses) ?? ['high']
  return {
    search_context_size: size,
    ...(location && { user_location: { type: 'approximate', approximate: location } }),
  }
}
