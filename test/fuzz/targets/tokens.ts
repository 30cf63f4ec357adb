import { INHERITED, VALUES } from '../../corpus/values.ts'

const MARKS = ['{', '}', '[', ']', ':', ',', '"', '\\', '\n', '\r', ' ', '\\u0000', '\\ud800', '9'.repeat(30)]
const NAMES = [
  'model',
  'messages',
  'role',
  'content',
  'type',
  'text',
  'tools',
  'choices',
  'delta',
  'index',
  'usage',
  'tool_calls',
  'function',
  'arguments',
  'input',
  'source',
  ...INHERITED,
].map((name) => `"${name}":`)
/** Pieces of the JSON that clients and upstreams send, and pieces that may confuse its readers. */
export const JSON_TOKENS = [...MARKS, ...NAMES, ...VALUES]
/** Pieces of event streams, with those of JSON. */
export const SSE_TOKENS = [
  ...JSON_TOKENS,
  '\n\n',
  'data: ',
  'event: ',
  ': c\n',
  'data: [DONE]\n\n',
  '\ufeff',
  'event: error\n',
]
