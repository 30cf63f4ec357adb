import type { Members } from './vocabulary.ts'

/** A mark of the prompt cache, in the dialects of OpenAI and Anthropic. */
export const MARK = {
  Mark: { comparison_response_id: 'id', mode: 'mark', scope: 'mark', ttl: 'mark', type: 'mark' },
} as const satisfies Readonly<Record<'Mark', Members<never>>>

/** Location of the user, for web searches. */
export const LOCATION = {
  Location: {
    approximate: 'Location',
    city: 'text',
    country: 'text',
    region: 'text',
    timezone: 'text',
    type: 'term',
  },
} as const satisfies Readonly<Record<'Location', Members<'Location'>>>
