/** The forms in which a client may receive one answer: as a whole, and as a stream of events. */
export { chatAnswerForms, completionsAnswerForms, withUsageChunk } from './chat.ts'
export { type AnswerForms, parseEvents, type Json } from './answer-forms.ts'
export { converseAnswerForms } from './converse.ts'
export { ANSWER_FORMS } from './forms-by-name.ts'
export { geminiAnswerForms } from './gemini.ts'
export { imageAnswerForms, transcriptAnswerForms } from './media.ts'
export { messagesAnswerForms } from './messages.ts'
export { responsesAnswerForms } from './responses.ts'
