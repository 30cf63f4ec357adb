import { expect, test } from 'vitest'
import { executedCodeOutput, providerToolTexts } from './executed-code.ts'

test.each<[string, unknown, readonly string[]]>([
  ['gemini', { codeExecutionResult: { outcome: 'OUTCOME_OK', output: 'a' } }, ['a']],
  ['gemini in snake case', { code_execution_result: { output: 'a' } }, ['a']],
  ['converse', { toolResult: { toolUseId: 't', content: [{ text: 'a' }] } }, ['a']],
  [
    'messages, Python',
    { type: 'code_execution_tool_result', content: { type: 'x', stdout: 'a', stderr: 'b', content: [] } },
    ['a', 'b'],
  ],
  [
    'messages, a file that was shown',
    { type: 'text_editor_code_execution_tool_result', content: { file_type: 'text', content: 'a' } },
    ['a'],
  ],
  [
    'messages, a change of a file',
    { type: 'text_editor_code_execution_tool_result', content: { lines: ['-a', '+b'] } },
    ['-a', '+b'],
  ],
  ['responses', { type: 'code_interpreter_call', code: 'x', outputs: [{ type: 'logs', logs: 'a' }] }, ['a']],
  ['responses, a shell', { type: 'shell_call_output', output: [{ stdout: 'a', stderr: 'b' }] }, ['a', 'b']],
  ['a search', { type: 'web_search_tool_result', content: [{ url: 'x', title: 'a' }] }, []],
  ['a text', { type: 'text', text: 'a' }, []],
  ['no object', 'a', []],
])('executedCodeOutput returns what code printed: %s', (_, value, texts) => {
  expect(executedCodeOutput(value)).toEqual(texts)
})

test.each<[string, unknown, readonly string[]]>([
  ['code of gemini', { executableCode: { language: 'PYTHON', code: 'a' } }, ['a']],
  ['a tool of gemini', { toolCall: { toolType: 'x', args: { q: 1 } } }, ['{"q":1}']],
  ['a tool of messages', { type: 'server_tool_use', name: 'x', input: { code: 'a' } }, ['{"code":"a"}']],
  ['code of responses', { type: 'code_interpreter_call', code: 'a', outputs: null }, ['a']],
])('providerToolTexts returns the input of a tool that the provider ran: %s', (_, value, texts) => {
  expect(providerToolTexts(value)).toEqual(texts)
})
