import { expect, test } from 'vitest'
import { chatPrompt } from './chat-request.ts'
import { requestedTitle } from './title-and-json-requests.ts'
import { titleOf } from './title.ts'

/** Title generated for a conversation by a side request; undefined if the request does not ask for one. */
function titleGiven(system: string, ...user: string[]): string | undefined {
  const messages = user.map((content) => ({ role: 'user', content }))
  return requestedTitle(
    chatPrompt({ messages: [{ role: 'system', content: system }, ...messages] }, 'demo-chat'),
  )
}

test.each([
  ['Read notes.txt and tell me what it says', 'Read notes.txt'],
  ['"why is the sky blue?"', 'Why is the sky blue'],
  [
    'Generate a title for:\n<chat_history>\nUSER: Plan my trip to Oslo\n</chat_history>',
    'Plan my trip to Oslo',
  ],
  ['', 'New conversation'],
])('the title of the conversation is right for %s', (message, title) => {
  expect(titleOf(message)).toBe(title)
})

test('the simulator returns a title if the system prompt requests one', () => {
  expect(titleGiven('You are a title generator.', 'Plan my trip to Oslo')).toBe('Plan my trip to Oslo')
  expect(titleGiven('Generate a concise, sentence-case title (3-7 words).', 'Plan my trip')).toBe(
    'Plan my trip',
  )
})

test('if the last message requests a title, the simulator returns a title of the message before it', () => {
  expect(titleGiven('Be kind.', 'Plan my trip to Oslo', 'Write a title for this conversation')).toBe(
    'Plan my trip to Oslo',
  )
})

test('the simulator returns no title if none is requested', () => {
  expect(titleGiven('You write articles with a title each.', 'Lighthouses, please')).toBeUndefined()
  expect(titleGiven('Be kind.', 'What is a fitting title for a king?')).toBeUndefined()
})
