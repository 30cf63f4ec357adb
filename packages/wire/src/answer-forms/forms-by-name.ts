import { chatAnswerForms, completionsAnswerForms } from './chat.ts'
import { geminiAnswerForms } from './gemini.ts'
import { messagesAnswerForms } from './messages.ts'
import { responsesAnswerForms } from './responses.ts'

/** How answers of the endpoints for text convert between a whole body and a stream. */
export const ANSWER_FORMS = {
  chat: chatAnswerForms,
  completions: completionsAnswerForms,
  messages: messagesAnswerForms,
  gemini: geminiAnswerForms,
  responses: responsesAnswerForms,
} as const
