/** Public interface of the moderations dialect. */
export { promptText, promptBound } from './prompt.ts'
export { readModerationsReply } from './reply.ts'
export { type ModerationsRequest, moderationsRequestSchema, readModerationsRequest } from './request.ts'
