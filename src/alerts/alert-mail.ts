import { createTransport } from 'nodemailer'
import type { SmtpOptions } from '../domain/options.ts'
import type { AlertText } from './alert-text.ts'

const TIMEOUT_MS = 15_000

/**
 * Sends an alert as a mail of plain text. Rejects if the server does not accept it, or if the connection is
 * not encrypted as `security` demands.
 */
export async function sendAlertMail(
  to: readonly string[],
  id: string,
  { title, facts }: AlertText,
  { host, port, security, user, password, from }: SmtpOptions,
): Promise<void> {
  const transport = createTransport({
    host,
    port,
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    ...(user !== '' && { auth: { user, pass: password } }),
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    // Texts are data: no file and no address is read for them.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  try {
    await transport.sendMail({
      from,
      to: [...to],
      // An alert that is sent again is the same mail, which readers can recognise.
      messageId: `<${id}@sluice>`,
      subject: `Sluice: ${title}`.replace(/[\r\n]+/g, ' '),
      text: `${title}.\n\n${facts.map(([name, value]) => `${name}: ${value}\n`).join('')}`,
    })
  } finally {
    transport.close()
  }
}
