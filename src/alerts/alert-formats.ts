import type { AlertFormat } from '../domain/alert.ts'
import type { AlertText } from './alert-text.ts'

/** The formats of chats, each with the body of a message. Names are escaped, and mention no one. */
export const CHAT_BODIES: Readonly<Record<Exclude<AlertFormat, 'standard'>, (text: AlertText) => object>> = {
  // https://api.slack.com/reference/surfaces/formatting: three characters are escaped, and mentions begin with
  // one of them.
  slack: ({ title, facts }) => ({
    text: [title, ...facts.map(([name, value]) => `${name}: ${value}`)].map(forSlack).join('\n'),
    mrkdwn: false,
    link_names: false,
    unfurl_links: false,
  }),
  // https://learn.microsoft.com/adaptive-cards: text blocks know a part of Markdown, and mentions only as
  // entities beside the text.
  teams: ({ title, facts }) => ({
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body: [
            { type: 'TextBlock', text: forMarkdown(title), weight: 'Bolder', wrap: true },
            {
              type: 'FactSet',
              facts: facts.map(([name, value]) => ({ title: name, value: forMarkdown(value) })),
            },
          ],
        },
      },
    ],
  }),
  // https://discord.com/developers/docs/resources/webhook: at most 2,000 characters.
  discord: ({ title, facts }) => ({
    content: [
      `**${forMarkdown(title)}**`,
      ...facts.map(([name, value]) => `${forMarkdown(name)}: ${forMarkdown(value)}`),
    ]
      .join('\n')
      .slice(0, MAX_DISCORD_LENGTH),
    allowed_mentions: { parse: [] },
  }),
}

const MAX_DISCORD_LENGTH = 2_000

function forSlack(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;')
}

// A backslash before a punctuation character takes its meaning, in Markdown of any kind. A space without width
// keeps `@everyone` from being read as a mention where a client looks for names itself.
function forMarkdown(text: string): string {
  return text.replace(/[\\`*_{}[\]()<>#+\-.!|~]/g, '\\$&').replace(/@/g, '@\u200B')
}
