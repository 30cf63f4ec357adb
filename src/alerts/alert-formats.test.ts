import { describe, expect, test } from 'vitest'
import { ALERT_TYPES } from '../domain/alert.ts'
import { CHAT_BODIES } from './alert-formats.ts'
import { alertText } from './alert-text.ts'

const HOSTILE = '<!channel> @everyone [a](http://x) *b* `c` & \u202e'

const textOf = (channel: string) =>
  alertText(
    'channel.resting',
    JSON.stringify({ channel, cause: 'server_error', status: 503, models: ['a', 'b'] }),
  )

describe('an alert in words', () => {
  test('has a sentence and the facts of its data, times in ISO 8601, and no null', () => {
    expect(textOf('main')).toEqual({
      title: 'The channel main rests',
      facts: [
        ['channel', 'main'],
        ['cause', 'server_error'],
        ['status', '503'],
        ['models', 'a, b'],
      ],
    })
    const limit = { channel: 'c', model: 'm', kind: 'requests', remaining: 3, resets_at: 1_795_315_200 }
    expect(alertText('provider.limit', JSON.stringify(limit)).facts.at(-1)).toEqual([
      'resets_at',
      '2026-11-22T02:40:00.000Z',
    ])
    expect(alertText('provider.limit', JSON.stringify({ ...limit, resets_at: null })).facts).toHaveLength(4)
  })

  test.each(ALERT_TYPES)('is a sentence for every type: %s', (type) => {
    const { title } = alertText(
      type,
      '{"channel":"x","model":"x","name":"x","subject":"user","username":"x","node":"x"}',
    )
    expect(title).not.toBe(type)
    expect(title).toMatch(/^[A-Z8].*[^.]$/)
  })
})

describe('a message to a chat', () => {
  test('Slack: the three characters of its markup are escaped, and nothing is formatted', () => {
    const body = CHAT_BODIES.slack(textOf(HOSTILE)) as { text: string; mrkdwn: boolean }
    expect(body.text.split('\n')[0]).toBe(
      `The channel &lt;!channel&gt; @everyone [a](http://x) *b* \`c\` &amp; \u202e rests`,
    )
    expect(body).toMatchObject({ mrkdwn: false, link_names: false })
  })

  test('Teams: an adaptive card, in which Markdown has no meaning and no one is mentioned', () => {
    const body = JSON.parse(JSON.stringify(CHAT_BODIES.teams(textOf(HOSTILE))))
    expect(body).toMatchObject({ type: 'message' })
    const [{ contentType, content }] = body.attachments
    expect(contentType).toBe('application/vnd.microsoft.card.adaptive')
    const [title, facts] = content.body
    expect(title.text).toBe(
      'The channel \\<\\!channel\\> @\u200Beveryone \\[a\\]\\(http://x\\) \\*b\\* \\`c\\` & \u202e rests',
    )
    expect(facts.facts[1]).toEqual({ title: 'cause', value: 'server\\_error' })
    expect(content.msteams).toBeUndefined()
  })

  test('Discord: no mention is parsed, and the text fits', () => {
    const body = CHAT_BODIES.discord(textOf(HOSTILE.repeat(200))) as {
      content: string
      allowed_mentions: object
    }
    expect(body.allowed_mentions).toEqual({ parse: [] })
    expect(body.content.length).toBeLessThanOrEqual(2000)
    expect(body.content).not.toMatch(/@everyone|(?<!\\)[`_[]/)
  })
})
