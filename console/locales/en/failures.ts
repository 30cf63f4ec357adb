/** Texts in English: why attempts at upstreams failed. */
export const failures = {
  status: (status: string) => `answered ${status}`,
  ofCause: {
    ECONNREFUSED: 'connection refused',
    ECONNRESET: 'connection reset',
    EHOSTUNREACH: 'host not reachable',
    ENETUNREACH: 'network not reachable',
    ENOTFOUND: 'address not found',
    EPIPE: 'connection closed',
    ETIMEDOUT: 'no connection in time',
    'connect time-out': 'no connection in time',
    'first byte time-out': 'no answer in time',
    'idle time-out': 'stopped sending',
    'total time-out': 'took too long',
    'connection closed': 'connection closed',
    'stream ended early': 'stream ended early',
    'error in the first event': 'error in the stream',
    'error with status 200': 'error with status 200',
  } as Readonly<Record<string, string>>,
}
