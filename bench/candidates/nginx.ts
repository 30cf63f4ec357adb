import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../test/fixtures/port.ts'
import type { Candidate } from './candidate.ts'
import { installed } from '../measuring/installed.ts'
import { copiedRequest } from '../load/requests.ts'
import { startMeasured } from '../measuring/started.ts'

/** nginx as a plain proxy: one worker, keep-alive on both sides, no log, no buffering of responses. */
export const nginx: Candidate = {
  async start(upstreamPort, folder) {
    const program = installed('nginx')
    if (!program) return 'nginx is not installed (Debian: apt-get install nginx-light)'
    const port = await freePort()
    const file = join(folder, 'nginx.conf')
    writeFileSync(file, configuration(port, upstreamPort, folder))
    const started = await startMeasured({
      command: [program, '-c', file, '-p', folder, '-e', join(folder, 'error.log')],
      port,
      folder,
    })
    return { ...started, port }
  },
  request: copiedRequest,
}

function configuration(port: number, upstreamPort: number, folder: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 8192; }
http {
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n  ')}
  access_log off;
  keepalive_requests 1000000000;
  client_max_body_size 16m;
  client_body_buffer_size 2m;
  upstream model { server 127.0.0.1:${upstreamPort}; keepalive 2048; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    tcp_nodelay on;
    location / {
      proxy_pass http://model;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`
}
