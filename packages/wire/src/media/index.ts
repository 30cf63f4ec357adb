/** Exports of the protocols for images and audio. */
export {
  type Fields,
  flagIn,
  formFields,
  imageFormSchema,
  imageRequestSchema,
  integerIn,
  jsonFields,
  mediaNames,
  modelIn,
  speechRequestSchema,
  textIn,
  transcriptFormSchema,
  variationFormSchema,
} from './request.ts'
export { ImageReply, jsonTranscript, MediaTap, plainTranscript, type TranscriptFacts } from './reply.ts'
