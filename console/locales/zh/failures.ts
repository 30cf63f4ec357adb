import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: why attempts at upstreams failed. */
export const failures: Texts['failures'] = {
  status: (status) => `答复 ${status}`,
  ofCause: {
    ECONNREFUSED: '连接被拒绝',
    ECONNRESET: '连接被重置',
    EHOSTUNREACH: '主机不可达',
    ENETUNREACH: '网络不可达',
    ENOTFOUND: '找不到地址',
    EPIPE: '连接已关闭',
    ETIMEDOUT: '未按时连接',
    'connect time-out': '未按时连接',
    'first byte time-out': '未按时答复',
    'idle time-out': '停止发送',
    'total time-out': '耗时过长',
    'connection closed': '连接已关闭',
    'stream ended early': '流提前结束',
    'error in the first event': '流中有错误',
    'error with status 200': '状态 200 但有错误',
  },
}
