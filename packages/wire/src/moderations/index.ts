/** Public interface of the moderations dialect. */
export { MODERATIONS_PROMPT } from './request.ts'
export { readModerationsReply } from './reply.ts'
export { moderationsRequestSchema, readModerationsRequest } from './request.ts'
export { moderationsNames } from './request.ts'
