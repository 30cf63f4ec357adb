import { z } from 'zod'
import { listOptions, optionSchema } from '../../management/settings/list-options.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Options`. */
export const listOptionsEndpoint = defineEndpoint({
  method: 'GET',
  path: '/api/option/',
  area: 'management',
  access: 'root',
  summary: 'The options, prices and groups in force',
  responseBody: z.array(optionSchema),
  handle: ({ parts }) => listOptions(parts),
})
