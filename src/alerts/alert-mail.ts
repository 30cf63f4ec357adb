import { createTransport, type NodemailerError } from 'nodemailer'
import type { SmtpOptions } from '../domain/options.ts'
import type { AlertText } from './alert-text.ts'

/**
 * Sends an alert as a mail of plain text. Resolves to the refusals of addresses, perhaps of all. Rejects if the server
 * does not accept the mail itself, if the connection is not encrypted as `security` demands, and with the reason of
 * `signal` once that is aborted.
 */
export async function sendAlertMail(
  to: readonly string[],
  id: string,
  { title, facts }: AlertText,
  { host, port, security, user, password, from }: SmtpOptions,
  signal: AbortSignal,
): Promise<readonly NodemailerError[]> {
  const transport = createTransport({
    host,
    port,
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    ...(user !== '' && { auth: { user, pass: password } }),
    // A server that does not close its side would hold the process.
    socketCloseTimeout: 0,
    // Texts are data: no file and no address is read for them.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  try {
    const { rejectedErrors = [] } = await transport.sendMail({
      from,
      to: [...to],
      // An alert that is sent again is the same mail, which readers can recognise.
      messageId: `<${id}@sluice>`,
      subject: `Sluice: ${title}`.replace(/[\r\n]+/g, ' '),
      text: `${title}.\n\n${facts.map(([name, value]) => `${name}: ${value}\n`).join('')}`,
      signal,
    })
    return rejectedErrors
  } catch (error) {
    signal.throwIfAborted()
    const { rejectedErrors } = error as NodemailerError
    if (rejectedErrors) return rejectedErrors
    throw error
  } finally {
    transport.close()
  }
}
