import type { SearchLocation, WebSearch } from '../conversation.ts'
import { SEARCHES, sizeOf } from '../search-size.ts'
import { type Fields, fieldsAt, present, textAt, enumAt } from '../field.ts'

const PLACES = ['city', 'country', 'region', 'timezone'] as const

/** Decodes `web_search_options`. */
export function decodeWebSearch(value: unknown): WebSearch {
  const options = fieldsAt(value, 'web_search_options')
  const size = present(options['search_context_size']) ?? 'medium'
  const location = decodeLocation(options)
  return {
    maxUses: enumAt(SEARCHES, size, 'web_search_options.search_context_size'),
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

/** Encodes a search with the smallest context size that allows this many uses. */
export function encodeWebSearch({ maxUses, location }: WebSearch): unknown {
  return {
    search_context_size: sizeOf(maxUses),
    ...(location && { user_location: { type: 'approximate', approximate: location } }),
  }
}

/** Reports whether a model is known to support `web_search_options`; others refuse or ignore the field. */
export function canSearch(model: string): boolean {
  return /search|(?:^|\/)sonar/i.test(model)
}
