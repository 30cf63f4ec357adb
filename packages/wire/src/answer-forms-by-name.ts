import { chatAnswerForms, completionsAnswerForms } from './chat/index.ts'
import { geminiAnswerForms } from './gemini/index.ts'
import { messagesAnswerForms } from './messages/index.ts'
import { responsesAnswerForms } from './responses/index.ts'

/** How answers of the endpoints for text convert between a whole body and a stream. */
export const ANSWER_FORMS = {
  chat: chatAnswerForms,
  completions: completionsAnswerForms,
  messages: messagesAnswerForms,
  gemini: geminiAnswerForms,
  responses: responsesAnswerForms,
} as const
