import type { CacheOptions } from '../../../src/domain/options.ts'

export type AnswerCacheField = keyof CacheOptions

/** The members of the option `cache` as texts; those that are not set have the defaults of the gateway. */
type AnswerCacheFields = { readonly [Field in AnswerCacheField]?: string }

/** Reads the option `cache` from JSON text, which is empty if no answers are cached. */
export function parseAnswerCacheOption(value: string): AnswerCacheFields {
  const members = value === '' ? {} : (JSON.parse(value) as Record<string, string | number>)
  return Object.fromEntries(Object.entries(members).map(([name, one]) => [name, String(one)]))
}

/**
 * Writes the option `cache` as JSON text. Sizes without a unit are numbers of bytes; empty texts are left
 * out.
 */
export function answerCacheText(fields: AnswerCacheFields): string {
  const members = Object.entries(fields).flatMap(([name, text]) => {
    const value = text.trim()
    if (value === '') return []
    return [[name, name === 'most' && /^\d{1,15}$/.test(value) ? Number(value) : value]]
  })
  return JSON.stringify(Object.fromEntries(members))
}
