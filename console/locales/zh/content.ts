import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: content. */
export const content: Texts['content'] = {
  title: '对话内容',
  show: '显示对话内容',
  isRecorded: '每次查看他人的内容都会被记录。',
  notYours: '内容已不再保留，或您无权查看。',
  conversation: '对话',
  raw: '原始字节',
  parts: {
    request_received: '收到的请求',
    request_sent: '发出的请求',
    answer_received: '收到的答复',
    answer_sent: '发出的答复',
  },
  binary: (part) => `${part}（base64）`,
  roles: {
    system: '系统',
    developer: '开发者',
    user: '用户',
    assistant: '助手',
    model: '助手',
    tool: '工具',
    function: '工具',
  },
  thinking: '思考',
  called: (name) => `调用 ${name}`,
  result: '工具结果',
  file: (type, address) => (address === '' ? `文件：${type}` : `文件：${type}，${address}`),
  thread: '以对话形式阅读',
  table: '以表格形式显示',
  nothingKept: '这些调用的内容没有保留。',
  noText: '此调用没有保留文本。',
  loading: '正在加载…',
}
