import { type ChildProcess, fork } from 'node:child_process'

/** Starts a program of this folder, which ends with its parent. */
export function start(program: URL, ...args: string[]): ChildProcess {
  return fork(program, args, { execArgv: [] })
}

/** The next message of the program; rejects if the program ends instead. */
export function nextMessage<Message>(child: ChildProcess): Promise<Message> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void => reject(new Error(`a process of the load ended with ${code}`))
    child.once('exit', ended)
    child.once('message', (message) => {
      child.off('exit', ended)
      resolve(message as Message)
    })
  })
}
