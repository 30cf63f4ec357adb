import type { z } from 'zod'
import type { whatIfBody, whatIfSchema } from '../../src/management/usage/what-if.ts'
import { request } from './client.ts'

/** What the calls of a period were charged, and what they would have been. */
export type WhatIf = z.output<typeof whatIfSchema>

/** A period and what would have been different. */
export type WhatIfQuestion = z.input<typeof whatIfBody>

/** Prices the calls of a period again; nothing is changed. */
export function requestWhatIf(question: WhatIfQuestion): Promise<WhatIf> {
  return request<WhatIf>('POST', '/api/usage/what-if', question)
}
