/** Exports of the moderations protocol. */
export {
  MODERATIONS_PROMPT_RULES,
  moderationFieldNames,
  moderationsRequestSchema,
  readModerationsReply,
  readModerationsRequest,
} from './moderations.ts'
export { MODERATIONS_REQUEST } from './shape.ts'
