/** Exports of the protocols for images and audio. */
export { imageAnswerForms, transcriptAnswerForms } from './answer-forms.ts'
export {
  type Fields,
  readFlagField,
  formFields,
  imageFormSchema,
  imageRequestSchema,
  readIntegerField,
  jsonFields,
  mediaFieldNames,
  requireModelField,
  speechRequestSchema,
  readTextField,
  transcriptFormSchema,
  variationFormSchema,
} from './request.ts'
export { ImageReply, jsonTranscript, MediaTap, plainTranscript, type TranscriptFacts } from './reply.ts'
export { IMAGES_REQUEST, SPEECH_REQUEST } from './shape.ts'
