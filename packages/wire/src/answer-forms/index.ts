/** The forms in which a client may receive one answer: as a whole, and as a stream of events. */
export { chatAnswers, completionsAnswers, withUsageChunk } from './chat.ts'
export { type AnswerForm, parseEvents, type Json } from './answer-forms.ts'
export { geminiAnswers } from './gemini.ts'
export { messagesAnswers } from './messages.ts'
export { responsesAnswers } from './responses.ts'
