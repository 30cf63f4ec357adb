import type { z } from 'zod'
import type { whatIfBody, whatIfSchema } from '../../src/management/usage/what-if.ts'
import { request } from './client.ts'

/** What the calls of a period were charged, and what they would have been charged under other conditions. */
export type WhatIfResult = z.output<typeof whatIfSchema>

/** A period, and the conditions to assume for its calls. */
export type WhatIfQuestion = z.input<typeof whatIfBody>

/** Computes the prices of the calls of a period under the given conditions; nothing is changed. */
export function requestWhatIf(question: WhatIfQuestion): Promise<WhatIfResult> {
  return request<WhatIfResult>('POST', '/api/usage/what-if', question)
}
