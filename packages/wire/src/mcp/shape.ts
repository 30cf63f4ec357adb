import { defineShape } from '../shape/define-shape.ts'

/** A request of the Model Context Protocol to a server. https://modelcontextprotocol.io/specification/2026-07-28/schema */
export const MCP_REQUEST = defineShape({
  Request: { id: 'id', jsonrpc: 'term', method: 'term', params: 'Params' },
  Params: {
    _meta: 'term of provider',
    argument: 'arguments',
    arguments: 'arguments',
    context: 'arguments',
    inputResponses: 'arguments',
    name: 'term',
    ref: 'term',
    requestState: 'term',
    uri: 'term',
  },
})

/** What a server answers to a call of a tool, to a prompt or to a resource. Its texts are results of a tool. */
export const MCP_RESULT = defineShape({
  Request: { error: 'Error', id: 'id', jsonrpc: 'term', method: 'term', params: 'Params', result: 'Result' },
  Error: { code: 'number', data: 'result', message: 'result' },
  /** Of notifications that come before the result. */
  Params: {
    data: 'result',
    level: 'term',
    logger: 'term',
    message: 'result',
    progress: 'number',
    total: 'number',
  },
  Result: {
    _meta: 'term of provider',
    cacheScope: 'term',
    completion: 'result',
    content: 'result | Content of tool',
    contents: 'result | Contents of tool',
    description: 'result',
    inputRequests: 'result',
    isError: 'number',
    messages: 'Message',
    requestState: 'term',
    resultType: 'term',
    structuredContent: 'result',
    ttlMs: 'number',
  },
  Message: { content: 'result | Content of tool', role: 'role' },
  Content: {
    _meta: 'term of provider',
    annotations: 'term',
    data: 'media',
    description: 'result',
    mimeType: 'term',
    name: 'result',
    resource: 'Contents of tool',
    size: 'number',
    text: 'result',
    title: 'result',
    type: 'term',
    uri: 'result',
  },
  Contents: {
    _meta: 'term of provider',
    blob: 'media',
    mimeType: 'term',
    text: 'result',
    uri: 'result',
  },
})
