import { expect, test } from 'vitest'
import { conversationOf } from '../../../test/samples/conversation.ts'
import { withReadableBlocks } from './readable-blocks.ts'

const block = (value: object) => ({ kind: 'opaque', protocol: 'messages', value }) as const
const use = (id: string) => block({ type: 'mcp_tool_use', id, name: 'find', input: { q: id } })
const failed = (id: string) =>
  block({ type: 'mcp_tool_result', tool_use_id: id, is_error: true, content: 'down' })

test('a failed call by MCP is a failed call of a function for other protocols; a call and a result alone stay as they are', () => {
  const parts = [use('a'), failed('a'), use('b'), failed('c')]
  const { turns } = withReadableBlocks(conversationOf({ turns: [{ role: 'assistant', parts }] }), 'chat')
  expect(turns).toEqual([
    { role: 'assistant', parts: [{ kind: 'tool-call', id: 'a', name: 'find', input: '{"q":"a"}' }] },
    {
      role: 'user',
      parts: [{ kind: 'tool-result', callId: 'a', parts: [{ kind: 'text', text: 'down' }], isError: true }],
    },
    { role: 'assistant', parts: [use('b'), failed('c')] },
  ])
})
