import { expect, test } from 'vitest'
import { type ConversationStep, conversationState } from './conversation.ts'

function user(text: string, hasMedia = false): ConversationStep {
  return { kind: 'user', text, hasMedia }
}

test("the simulator does not take reminders that agents add to a message as the user's words", () => {
  const reminder = '<system-reminder>\nWrite tests.\n</system-reminder>'
  const { lastUser, userTexts } = conversationState([
    user(`${reminder}\nHello ${reminder}there`),
    user(reminder),
  ])
  expect(lastUser).toBe('Hello there')
  expect(userTexts).toEqual(['Hello there'])
})

test("the simulator considers only the tool calls and results since the user's last message", () => {
  const round: ConversationStep[] = [
    { kind: 'model', calls: 1 },
    { kind: 'result', text: 'one' },
  ]
  expect(conversationState([user('a'), ...round, ...round])).toMatchObject({
    results: ['one', 'one'],
    callsMade: 2,
  })
  expect(conversationState([user('a'), ...round, user('b')])).toMatchObject({
    results: [],
    callsMade: 0,
    lastUser: 'b',
  })
})

test('the simulator does not take an image next to tool results as a new message of the user', () => {
  const steps: ConversationStep[] = [
    user('a'),
    { kind: 'model', calls: 1 },
    { kind: 'result', text: 'one' },
    user('', true),
  ]
  expect(conversationState(steps)).toMatchObject({ lastUser: 'a', results: ['one'] })
  expect(conversationState([user('a'), { kind: 'model', calls: 0 }, user('', true)]).lastUser).toBe('')
})

test.each([
  ['Current working directory: /home/ada/project', '/home/ada/project'],
  [' - Primary working directory: /home/ada/my project\n - Platform: linux', '/home/ada/my project'],
  ["I'm currently working in the directory: /home/ada/project/\nHere", '/home/ada/project'],
  ['<environment_context>\n<cwd>/home/ada</cwd></environment_context>', '/home/ada'],
  ['{"cwd": "/home/ada"}', '/home/ada'],
  ['Your current working directory is /home/ada/project. Use absolute paths.', '/home/ada/project'],
  ['Working directory: C:\\Users\\Ada\\project', 'C:\\Users\\Ada\\project'],
  ['Working directory: /', '/'],
  [
    '<session_context>\n- **Workspace Directories:**\n  - /home/ada/my project\n- **Directory Structure:**\n</session_context>',
    '/home/ada/my project',
  ],
  ['Use the working directory of the user.', undefined],
])('the working folder is found in %s', (text, folder) => {
  expect(conversationState([{ kind: 'system', text }, user('Hello')]).workingDirectory).toBe(folder)
  expect(conversationState([user(text), user('Hello')]).workingDirectory).toBe(folder)
})

test('the simulator does not take a folder that only a tool result mentions as the working folder', () => {
  const steps: ConversationStep[] = [
    user('a'),
    { kind: 'model', calls: 1 },
    { kind: 'result', text: 'cwd: /elsewhere' },
  ]
  expect(conversationState(steps).workingDirectory).toBeUndefined()
})
