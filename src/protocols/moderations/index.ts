/** Public interface of the moderations dialect. */
export { promptText } from './prompt.ts'
export { readModerationsReply } from './reply.ts'
export { moderationsRequestSchema, readModerationsRequest } from './request.ts'
export { moderationsNames } from './names.ts'
