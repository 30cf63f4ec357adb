import type { Patch } from '../../fixtures/patch.ts'

/** The planted defect, the target that finds it, the patch, and a part of the reported error. */
export const FUZZ_DEFECTS: readonly (readonly [string, string, Patch, string])[] = [
  [
    'a header’s name that is cut by the end of a read is lost',
    'http-requests',
    {
      file: 'packages/http1/src/server/request-reader.ts',
      text: "if (this.#headerPart === 'name') this.#keepName()",
      by: '',
    },
    'a cut changes nothing',
  ],
  [
    'chunks are read whatever coding is under them',
    'http-requests',
    {
      file: 'packages/http1/src/server/request-reader.ts',
      text: "known === 'chunked') return undefined",
      by: "known.endsWith('chunked')) return undefined",
    },
    'a request was found that is none',
  ],
  [
    'the body of an interim answer is taken for the answer’s',
    'http-responses',
    { file: 'packages/http1/src/client/response-reader.ts', text: 'return SKIP_BODY', by: 'return CONTINUE' },
    'ERR_OUT_OF_RANGE',
  ],
  [
    'what comes after an answer is not noticed',
    'http-responses',
    { file: 'packages/http1/src/client/response-reader.ts', text: 'isFine && end < length', by: 'false' },
    'surplus',
  ],
  [
    'a member of a chunk becomes one of all objects',
    'event-streams',
    { file: 'packages/wire/src/chat/answer-forms.ts', text: 'Object.hasOwn(object, name)', by: 'true' },
    'no input gives all objects a member',
  ],
  [
    'a boundary that is cut by the end of a read is content',
    'forms',
    {
      file: 'packages/wire/src/multipart.ts',
      text: 'const sure = this.#rest.length - this.#delimiter.length',
      by: 'const sure = this.#rest.length',
    },
    'a cut changes nothing',
  ],
  [
    'numbers may begin with zeros',
    'json-objects',
    {
      file: 'packages/wire/src/json/json-scan.ts',
      text: 'if (p < length && bytes[p] === ZERO) p++\n  else p = digitsEnd',
      by: 'p = digitsEnd',
    },
    'what JSON.parse refuses is refused',
  ],
  [
    'a member’s name with an escape is not found',
    'json-objects',
    {
      file: 'packages/wire/src/json/scanned-object.ts',
      text: 'if (byte === BACKSLASH) return this.parse(node) === key',
      by: 'if (byte === BACKSLASH) return false',
    },
    'a member in plain ASCII is found',
  ],
  [
    'the comma before a member that is removed at the end stays',
    'json-edits',
    {
      file: 'packages/wire/src/json/json-edit.ts',
      text: 'from: lastRemaining?.end ?? cutFrom',
      by: 'from: cutFrom',
    },
    'it is no JSON any more',
  ],
  [
    'a tool’s input that is held back is told in part',
    'json-texts',
    {
      file: 'packages/wire/src/tool-input.ts',
      text: 'this.#pending.delete(part)\n    return text',
      by: 'this.#pending.delete(part)\n    return piece',
    },
    'input of a tool',
  ],
  [
    'an escape after a picture is passed over in part',
    'json-texts',
    {
      file: 'packages/wire/src/json/json-outline.ts',
      text: 'this.#inString && this.#escapeLeft === 0',
      by: 'this.#inString',
    },
    'the outline of JSON is JSON',
  ],
  [
    'what a refused body held is not given back',
    'request-bodies',
    {
      file: 'src/call/body-reader.ts',
      text: 'over()\n        this.#memory.give(allocation, allocation.bytes)\n        sink',
      by: 'over()\n        sink',
    },
    'all memory is given back at the end',
  ],
  [
    'what follows a frame of zstd is never answered',
    'request-bodies',
    {
      file: 'src/call/zstd-frames.ts',
      text: 'if (this.#isLast) return this.#callback()',
      by: 'return this.#callback()',
    },
    'it is never answered',
  ],
  [
    'frames of zstd that come in one write are left unread',
    'request-bodies',
    {
      file: 'src/call/body-reader.ts',
      text: '() => new ZstdFrames()',
      by: '() => process.getBuiltinModule("node:zlib").createZstdDecompress()',
    },
    'a cut changes nothing',
  ],
  [
    'line ends that straddle two chunks are not seen',
    'event-streams',
    {
      file: 'packages/wire/src/sse/frame-splitter.ts',
      text: 'const SEAM_BYTES = 3',
      by: 'const SEAM_BYTES = 0',
    },
    'a cut changes no event',
  ],
  [
    'an event may be larger than it may',
    'event-streams',
    {
      file: 'packages/wire/src/sse/frame-splitter.ts',
      text: 'if (this.#held.length + piece.length > this.#maxEventBytes) this.#tooLarge()',
      by: '',
    },
    'than an event may have',
  ],
  [
    'a control frame between the frames of a message ends it',
    'web-socket-messages',
    {
      file: 'src/features/websocket/message-meter.ts',
      text: 'this.#endsMessage = !isControl && ((',
      by: 'this.#endsMessage = ((',
    },
    'what follows the last message is counted',
  ],
  [
    'the head of a frame that is cut by the end of a read is forgotten',
    'web-socket-messages',
    {
      file: 'src/features/websocket/message-meter.ts',
      text: 'let at = from\n',
      by: 'let at = from\n    this.#headBytes = 0\n',
    },
    'the count does not depend on the cuts',
  ],
  [
    'the id of an answer is sent beside its conversation',
    'web-socket-messages',
    {
      file: 'src/features/websocket/turn-frame.ts',
      text: "...(dropsPrevious ? ['previous_response_id'] : []),",
      by: '',
    },
    'the conversation is sent in place of its id',
  ],
]
