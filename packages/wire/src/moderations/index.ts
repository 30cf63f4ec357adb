/** Public interface of the moderations dialect. */
export { MODERATIONS_PROMPT } from '../moderations.ts'
export { readModerationsReply } from './reply.ts'
export { moderationsRequestSchema, readModerationsRequest } from '../moderations.ts'
export { moderationsNames } from '../moderations.ts'
