export {
  type Fields,
  flagIn,
  formFields,
  integerIn,
  jsonFields,
  modelIn,
  textIn,
} from './request.ts'
export { ImageReply } from './reply.ts'
export { MediaTap } from './reply.ts'
export { jsonTranscript, plainTranscript, type TranscriptFacts } from './reply.ts'
export {
  imageFormSchema,
  imageRequestSchema,
  speechRequestSchema,
  transcriptFormSchema,
  variationFormSchema,
} from './request.ts'
export { mediaNames } from './request.ts'
