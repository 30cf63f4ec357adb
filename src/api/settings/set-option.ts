import { optionBody } from '../../management/settings/option-body.ts'
import { setOption } from '../../management/settings/set-option.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Options`. */
export const setOptionEndpoint = defineEndpoint({
  method: 'PUT',
  path: '/api/option/',
  area: 'management',
  access: 'root',
  summary: 'Sets an option, prices or groups',
  errorStatuses: [409],
  body: optionBody,
  handle: ({ body, parts }) => setOption(parts, body),
})
