import { names, requestNames } from '../request-names.ts'
import { CHECKS } from './request.ts'

/** Names of requests for moderations. */
export const moderationsNames = requestNames(CHECKS.keys(), {
  input: names('type text', { image_url: names('url') }),
})
