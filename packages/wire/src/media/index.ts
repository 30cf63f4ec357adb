export {
  type Fields,
  flagIn,
  formFields,
  integerIn,
  jsonFields,
  modelIn,
  textIn,
} from './fields.ts'
export { ImageReply } from './image-reply.ts'
export { MediaTap } from './reply.ts'
export { jsonTranscript, plainTranscript, type TranscriptFacts } from './transcript.ts'
export {
  imageFormSchema,
  imageRequestSchema,
  speechRequestSchema,
  transcriptFormSchema,
  variationFormSchema,
} from './request.ts'
export { mediaNames } from './names.ts'
